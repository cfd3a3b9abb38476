"""Generated tasks over real text: facts planted in long documents, and questions about them."""
