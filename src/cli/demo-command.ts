import type { Command } from './command.ts'

/** The demonstration, which brings its own API server and clients. */
export const demo: Command = {
  help: () => `Usage: nodehub demo [FLAG...]

Runs an API server in memory, a hub before it, and a simulated kubelet and kube-proxy behind it.
Needs no cluster. Prints what to try, and lets you unplug the cloud and plug it in again.
Flags are those of nodehub start. If one of its ports is taken, it listens on free ones and says so.
`,
  async run(argv, terminal) {
    const { runDemo } = await import('./demo.ts')
    return runDemo(argv, terminal)
  },
}
