import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Runs kubectl over and over with each of `commands` in turn, as people and their scripts do. */
export class KubectlLoop {
  readonly errors: string[] = []
  runs = 0
  readonly #done: Promise<void>
  #stopped = false

  constructor(kubectl: string, server: string, commands: readonly (readonly string[])[]) {
    this.#done = this.#loop(kubectl, server, commands)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#done
  }

  async #loop(
    kubectl: string,
    server: string,
    commands: readonly (readonly string[])[],
  ): Promise<void> {
    while (!this.#stopped) {
      const command = commands[this.runs % commands.length] ?? []
      this.runs += 1
      await run(kubectl, [`--server=${server}`, '--request-timeout=20s', ...command]).catch(
        (error: Error & { stderr?: string }) =>
          void this.errors.push(`kubectl ${command.join(' ')}: ${error.stderr ?? error.message}`),
      )
      await sleep(100)
    }
  }
}
