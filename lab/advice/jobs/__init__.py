"""Small PySpark programs, each with one known trouble: ``spark-submit JOB.py DATA_FOLDER OUTPUT_FOLDER``.

They are written as their users write them. ``lab/advice/cases.py`` lists them, with the edits that follow a
recommendation.
"""
