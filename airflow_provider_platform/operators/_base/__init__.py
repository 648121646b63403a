"""What all operators share: the connection, arguments, and XCom."""
