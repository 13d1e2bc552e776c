"""Three small PySpark jobs as their users write them, whose logs are lab/recordings/first-hour.

Each is a program of its own, without a word of CrystalPerf:

    python lab/runs/first_hour/python_udfs.py EVENT_LOGS_FOLDER
    python lab/runs/first_hour/small_files.py EVENT_LOGS_FOLDER
    python lab/runs/first_hour/builder_settings.py EVENT_LOGS_FOLDER
"""
