"""The console: chatproc on a local web page, for this machine and the person who started it.

It decides nothing. Each page shows what one public function of the package returns, and each button calls
one; what it never does is listen beyond loopback, load anything from a network, or let a text become markup.
"""
