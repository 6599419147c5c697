import type { Command } from './command.ts'

/** The demonstration, with an API server and clients of its own. */
export const demo: Command = {
  help: () => `Usage: nodehub demo [FLAG...]

Runs an API server in memory, a hub before it, and a simulated kubelet and kube-proxy behind it.
Needs no cluster. Prints what to try, and lets you unplug the cloud and plug it in again.
Flags are those of nodehub start. Where a port is taken that no flag names, it takes a free one in
its place and says who has it; a port that was given and is taken ends it.
`,
  async run(argv, terminal) {
    const { runDemo } = await import('./demo.ts')
    return runDemo(argv, terminal)
  },
}
