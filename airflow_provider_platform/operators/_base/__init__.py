"""What all operators share: the connection, arguments, and what goes to XCom."""
