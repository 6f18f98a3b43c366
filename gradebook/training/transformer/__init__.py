"""A transformer that learns two-digit sums, trained with GRPO by both engines.

language     the 32 words, the sums, texts to learn from, and who checks an answer
model        many small transformers as one, and how they are sampled
pretraining  from random weights to a model that gets about half of the sums right
grpo         the update: rollouts, an engine's gradient, one step of Adam
experiments  what is trained for each bug, as scenarios/transformer/<bug>.toml has it
results      what a training gave: curves, words, and the files that are shipped
sentences    the question about a dose, and what its result says
live         both engines trained while one watches
command      `python -m gradebook.training transformer` trains everything anew
"""
