"""What several resources share."""
