"""Run a command several times under controlled conditions, and turn the runs into facts.

``measure``     the schedule: which trials, in which order, within the budget
``trials``      one trial: a contained child process with a plan for its inside
``stored``      facts as JSON, and back
"""
