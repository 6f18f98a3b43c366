"""The board: the batch as a table and a picture in one, to edit and to see."""
