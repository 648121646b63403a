"""The account: app configuration, users, OAuth."""
