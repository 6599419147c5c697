import { options } from '../config/options.ts'
import type { Command } from './command.ts'

const { 'server-addr': _, ...flags } = options

/** The demonstration, with an API server and clients of its own. */
export const demo: Command = {
  usage: 'demo [FLAG...]',
  description: `Runs two API servers in memory, a hub before them, and a simulated kubelet and kube-proxy behind it.
Needs no cluster. Prints what to try. Keys unplug the cloud and plug it in again, freeze one of its
two API servers, reboot the node without the cloud, apply a filter, and make two pods compete for
one port in a host-network pool; each says what to look at. Its ports are free ones but for those
that flags name.
`,
  flags,
  flagsOf: 'start',
  async run(argv, terminal) {
    const { runDemo } = await import('./demo.ts')
    return runDemo(argv, terminal)
  },
}
