"""Published data of other systems, next to CrystalPerf's answers.

``docs/systems-data.tsv`` names the data: nothing of it is copied into this repository.  A command takes the folder of a
clone (``git clone ADDRESS FOLDER``).
"""
