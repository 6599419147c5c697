import { options } from '../config/options.ts'
import type { Command } from './command.ts'

const { 'server-addr': _, ...flags } = options

/** The demonstration, with an API server and clients of its own. */
export const demo: Command = {
  usage: 'demo [FLAG...]',
  description: `Runs two API servers in memory, a hub before them, and a simulated kubelet and kube-proxy behind it.
Needs no cluster. Prints what to try. Keys unplug the cloud and plug it in again, freeze one of its
two API servers, reboot the node without the cloud, apply a filter, and make two pods compete for
one port in a host-network pool; each says what to look at. Where a port is taken that no flag
names, it takes a free one in its place and says who has it; a port that was given and is taken
ends it.
`,
  flags,
  flagsOf: 'start',
  async run(argv, terminal) {
    const { runDemo } = await import('./demo.ts')
    return runDemo(argv, terminal)
  },
}
