"""What is made of results: files of rows, pictures of charts, texts for people.

Knows neither Airflow nor HTTP.
"""
