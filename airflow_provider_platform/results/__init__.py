"""Results as people use them: rows in files, a specification with its rows as a picture.

Rows stream through: what is held at once is what came at once, or a row group. Nothing here knows
Airflow or HTTP; where to write is a path object that the caller hands in.
"""
