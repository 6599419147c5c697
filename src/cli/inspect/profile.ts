import { createWriteStream } from 'node:fs'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { hostname } from 'node:os'
import { pipeline } from 'node:stream/promises'
import { afterUnlessClosed, now } from '../../base/clock.ts'
import { count, optional, text } from '../../config/value.ts'
import { mostSeconds, profileKinds } from '../../http/server/profiles.ts'
import { commandFlag } from '../command-flags.ts'
import { operatorFile } from '../operator-file.ts'
import { inspection } from './inspection.ts'

type Kind = (typeof profileKinds)[number]

const endings: Readonly<Record<Kind, string>> = {
  cpu: 'cpuprofile',
  heap: 'heapprofile',
  'heap-snapshot': 'heapsnapshot',
}

/** Beyond the time of the profile. */
const patienceMs = 60_000

interface ProfileReport {
  readonly kind: Kind
  readonly file: string
  readonly bytes: number
}

export const profile = inspection<ProfileReport>({
  help: `cpu            where the hub spends its time, for --seconds
heap           which functions have allocated what is in memory, for --seconds
heap-snapshot  every object in memory: IT HAS ALL SECRETS OF THE HUB AND ITS CALLERS; the hub stands
               still while it is made, and needs as much memory again

For root alone; --token-file is not enough. Chrome's developer tools open the file.
`,
  takes: ['KIND'],
  acts: true,
  flags: {
    seconds: commandFlag({
      type: count(1, mostSeconds),
      default: 10,
      help: 'How long to measure.',
    }),
    file: commandFlag({
      type: optional(text('FILE')),
      default: undefined,
      defaultShown: 'nodehub-HOST-TIME and an ending by its kind, in the current folder',
      help: 'Where to write it. It must not exist yet; only its owner may read it.',
    }),
  },
  read: async (from) => {
    const kind = profileKinds.find((each) => each === from.words[0])
    if (kind === undefined) throw new Error(`KIND is one of ${profileKinds.join(', ')}`)
    const seconds = Number(from.flag('seconds'))
    const named = from.flag('file')
    const file = typeof named === 'string' ? named : usualFile(kind)
    const asking = from.request('POST', `/debug/${kind}?seconds=${seconds}`)
    afterUnlessClosed(asking, seconds * 1000 + patienceMs, () =>
      asking.destroy(new Error('it does not answer')),
    )
    asking.end()
    const [answer] = (await once(asking, 'response')) as [IncomingMessage]
    if (answer.statusCode !== 200)
      throw new Error(`${answer.statusCode} ${(await answer.toArray()).join('').trim()}`)
    const written = createWriteStream(operatorFile(file), { flags: 'wx', mode: 0o600 })
    await pipeline(answer, written)
    return { kind, file, bytes: written.bytesWritten }
  },
  table: ({ kind, file, bytes }) =>
    `${file} has ${bytes} bytes.\n${kind === 'heap-snapshot' ? 'It has all secrets that were in memory: delete it once it was read.\n' : ''}`,
})

const usualFile = (kind: Kind): string => {
  const time = new Date(now()).toISOString().replaceAll(/[-:]/g, '').replace(/\..*/, 'Z')
  return `nodehub-${hostname()}-${time}.${endings[kind]}`
}
