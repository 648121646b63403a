"""The settings of a connection as checked values, and who a chat session acts as."""
