import type { Command, ExitCode } from './command.ts'

/** The demonstration, which brings its own API server and clients. */
export const demo: Command = {
  help: () => `Usage: nodehub demo [FLAG...]

Runs an API server in memory, a hub before it, and a simulated kubelet and kube-proxy behind it.
Needs nothing installed. Prints what to try, and lets one pull the plug and put it back.
`,
  async run(argv) {
    const stage: string = './demo.ts'
    const { runDemo } = (await import(stage)) as {
      runDemo: (argv: readonly string[]) => Promise<ExitCode>
    }
    return runDemo(argv)
  },
}
