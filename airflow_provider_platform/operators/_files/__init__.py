"""What tasks write: paths in storages, files of a chat, facts for assets."""
