"""`PlatformDbtSyncSensor`: waits until a dbt sync that something else started has completed."""
