"""What Pagehand tells people about their jobs and requests: a family of notices a module, with the data, the keys and
the words of each.
"""
