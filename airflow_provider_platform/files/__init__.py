"""Rows of results in files, in XCom and in frames.

`types` decides the type of each column and reads values. `spool` keeps all rows until the types are
known. `options` says which files a task writes. `write` writes one file or several, and keeps the
first rows for XCom. `store` writes each file whole or not at all. `frames` makes data frames.
`answer_files` writes the files of a chat. Nothing here knows Airflow or HTTP: the caller passes a
path object that says where to write.
"""
