"""`andon demo`: a made-up plant, an embedded broker, and the whole product on this machine."""
