/**
 * A network of nothing but loopback: the node is Ready with it, and runs pods on its own network
 * alone. First by name in its folder.
 */
export const loopbackName = '0-loopback.conf'

export const loopbackNetwork =
  '{\n  "cniVersion": "0.3.0",\n  "name": "lo",\n  "type": "loopback"\n}\n'
