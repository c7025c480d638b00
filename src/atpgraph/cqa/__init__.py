"""Community question answering: Stack Exchange dumps, competition graphs, question difficulty."""
