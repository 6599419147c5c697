import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client, ClientOptions } from '../kit/client.ts'
import { TestHub } from '../kit/hub.ts'
import { ChildHub } from '../kit/hub-child.ts'
import { hubFlags, type TestHubOptions } from '../kit/hub-config.ts'

/** The hub of a sequence, whichever way it runs. */
export interface RunningHub extends AsyncDisposable {
  as(component: string, options: Partial<ClientOptions>): Client
  /** Resolves once the hub takes the cloud to be gone. */
  offline(): Promise<void>
  online(): Promise<void>
  /**
   * Another one over the same state: in a process of its own it is killed, in this one it stops.
   */
  restart(): Promise<void>
}

/** Keeps its state until it is disposed of. */
export async function runHub(options: TestHubOptions, child: boolean): Promise<RunningHub> {
  const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-model-'))
  const forget = (): void => rmSync(rootDir, { recursive: true, force: true })
  if (child) {
    const hub = new ChildHub(rootDir, hubFlags(rootDir, options))
    await hub.start()
    return {
      as: (component, asked) => hub.as(component, asked),
      offline: () => hub.offline(),
      online: () => hub.online(),
      restart: async () => {
        await hub.crash()
        await hub.start()
      },
      [Symbol.asyncDispose]: () => hub.crash().then(forget),
    }
  }
  const hub = await new TestHub(rootDir, options).start()
  return {
    as: (component, asked) => hub.as(component, asked),
    offline: () => hub.offline(),
    online: () => hub.online(),
    restart: () => hub.restart(),
    [Symbol.asyncDispose]: () => hub.stop().then(forget),
  }
}
