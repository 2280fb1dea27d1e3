"""Labels by people: samples and the queue in which people label them, their agreement, and corrected estimates.

``opinions`` has the values, ``label_file`` a file of them; ``auditor.store.reviews`` and ``review_draws`` keep them.
``samples`` draws answers for people, ``queue`` says who labels which next. ``labelled_rows`` corrects the measures of
rows by their labels, and ``agreement`` compares people; ``corrections`` does so for the samples of a period, and
``live_estimates`` while people label.
"""
