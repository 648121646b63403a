"""What several resources of the management API share."""
