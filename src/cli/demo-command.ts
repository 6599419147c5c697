import type { Command } from './command.ts'

/** The demonstration, which brings its own API server and clients. */
export const demo: Command = {
  help: () => `Usage: nodehub demo [FLAG...]

Runs an API server in memory, a hub before it, and a simulated kubelet and kube-proxy behind it.
Needs nothing installed. Prints what to try, and lets one pull the plug and put it back.
Flags are those of nodehub start; --proxy-port and --serve-port say where it listens.
`,
  async run(argv, terminal) {
    const { runDemo } = await import('./demo.ts')
    return runDemo(argv, terminal)
  },
}
