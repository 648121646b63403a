"""Results as people use them: rows in files and frames, charts as pictures, messages as texts.

Rows are kept until all have come and the types of their columns are known, small results in memory
and larger ones in a temporary file. Then they are written piece by piece. Nothing here knows
Airflow or HTTP; where to write is a path object that the caller hands in.
"""
