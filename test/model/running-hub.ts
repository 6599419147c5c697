import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Client, ClientOptions } from '../kit/client.ts'
import { TestHub } from '../kit/hub.ts'
import { FaultyDisk, disk } from '../crash/disk.ts'
import { ChildHub } from '../kit/hub-child.ts'
import { damageBodies } from '../kit/log-on-disk.ts'
import { until } from '../kit/until.ts'
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
  /** Absent where its disk cannot fail. */
  readonly disk?: FaultyDisk
  /** Resolves once its disk takes writes. */
  storing(): Promise<void>
  /** Damages what is stored of objects of this name. */
  damage(name: string): void
}

interface HubPlace {
  /** A process of its own. */
  readonly child: boolean
  /** Its disk can fail, where there is a compiler to make such a one. */
  readonly disk: boolean
}

/** The folder of the log. */
const cacheIn = (rootDir: string): string => {
  const [file = ''] = readdirSync(rootDir, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.log'),
  )
  return dirname(join(rootDir, file))
}

/** Keeps its state until it is disposed of. */
export async function runHub(options: TestHubOptions, place: HubPlace): Promise<RunningHub> {
  const rootDir = mkdtempSync(join(tmpdir(), 'nodehub-model-'))
  const damage = (name: string): void => damageBodies(cacheIn(rootDir), name)
  const forget = (): void => rmSync(rootDir, { recursive: true, force: true })
  if (place.child) {
    const made = place.disk ? disk(rootDir) : undefined
    const under =
      made && 'library' in made
        ? new FaultyDisk(made.library, rootDir, join(rootDir, 'control'))
        : undefined
    const hub = new ChildHub(rootDir, hubFlags(rootDir, options), {
      ...(under && { ...under.env, NODE_OPTIONS: '' }),
    })
    await hub.start()
    return {
      ...(under && { disk: under }),
      damage,
      storing: async () => {
        await until('the disk to take writes', async () => {
          return (await hub.ops.get('/readyz')).status === 200
        })
      },
      as: (component, asked) => hub.as(component, asked),
      offline: () => hub.offline(),
      online: () => hub.online(),
      restart: async () => {
        await hub.crash()
        await hub.start()
      },
      [Symbol.asyncDispose]: async () => {
        await hub.crash()
        under?.[Symbol.dispose]()
        forget()
      },
    }
  }
  const hub = await new TestHub(rootDir, options).start()
  return {
    damage,
    as: (component, asked) => hub.as(component, asked),
    offline: () => hub.offline(),
    online: () => hub.online(),
    restart: () => hub.restart(),
    storing: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => hub.stop().then(forget),
  }
}
