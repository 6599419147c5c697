import type { IncomingMessage } from 'node:http'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { fromProtobuf } from '../../src/sandbox/protobuf.ts'
import { readFields } from './wire-fields.ts'
import { inTime, type Patience } from './until.ts'

/** A watch event as a client receives it. */
export interface ReceivedEvent {
  readonly type: string
  readonly object: JsonObject
  /** As it came, framing included. */
  readonly frame: Buffer
}

/** An open watch whose events are read one by one, in the order received. */
export class ClientWatch {
  readonly answer: IncomingMessage
  /** Resolves when the watch has ended, once the reader has read to the end, or was cut. */
  readonly over: Promise<'ended' | 'broken'>
  readonly #events: AsyncGenerator<ReceivedEvent, void>
  readonly #patience: Patience

  /** `patience` limits the wait for each event, and for the end. */
  constructor(answer: IncomingMessage, patience: Patience = {}) {
    this.answer = answer
    this.#patience = patience
    this.#events = eventsOf(answer)
    this.over = new Promise((resolve) => {
      answer.once('close', () => resolve(answer.complete ? 'ended' : 'broken'))
    })
    answer.on('error', () => undefined)
  }

  get status(): number {
    return this.answer.statusCode ?? 0
  }

  /**
   * The next event, or `undefined` at the end. Rejects if the watch is cut or nothing is received
   * in time.
   */
  next(): Promise<ReceivedEvent | undefined> {
    return this.#next('the next event of a watch')
  }

  /** The next event other than a bookmark, with the end as in `next`. */
  async nextChange(): Promise<ReceivedEvent | undefined> {
    let [bookmarks, late] = [0, false]
    const change = async (): Promise<ReceivedEvent | undefined> => {
      let event = await this.next()
      for (; event?.type === 'BOOKMARK' && !late; bookmarks++) event = await this.next()
      return event
    }
    const describe = (): string => `${bookmarks} bookmarks`
    try {
      return await inTime('a change in a watch', change(), { ...this.#patience, describe })
    } finally {
      late = true
    }
  }

  async #next(what: string): Promise<ReceivedEvent | undefined> {
    const { value, done } = await inTime(what, this.#events.next(), this.#patience)
    return done === true ? undefined : value
  }

  /** All events, for a reader beside a test with time limits of its own. */
  [Symbol.asyncIterator](): AsyncGenerator<ReceivedEvent, void> {
    return this.#events
  }

  async take(count: number): Promise<ReceivedEvent[]> {
    const taken: ReceivedEvent[] = []
    while (taken.length < count) {
      const event = await this.#next(`event ${taken.length + 1} of ${count}`)
      if (event === undefined) throw new Error(`the watch ended after ${taken.length} events`)
      taken.push(event)
    }
    return taken
  }

  /** All events to the end. */
  async rest(): Promise<ReceivedEvent[]> {
    const taken: ReceivedEvent[] = []
    for (let event = await this.next(); event; event = await this.next()) taken.push(event)
    return taken
  }

  /** Reads to the end, or to the cut. */
  async end(): Promise<'ended' | 'broken'> {
    await this.rest().catch(() => undefined)
    return inTime('the end of a watch', this.over, this.#patience)
  }

  hangUp(): void {
    this.answer.destroy()
  }
}

async function* eventsOf(answer: IncomingMessage): AsyncGenerator<ReceivedEvent, void> {
  const protobuf = answer.headers['content-type']?.startsWith('application/vnd.') === true
  let rest = Buffer.alloc(0)
  for await (const chunk of answer) {
    rest = Buffer.concat([rest, chunk as Buffer])
    for (const event of eventsIn(rest, protobuf)) {
      yield event
      rest = rest.subarray(event.frame.length)
    }
  }
}

/** The events whose frames are whole. */
export function* eventsIn(bytes: Buffer, protobuf: boolean): Generator<ReceivedEvent> {
  let rest = bytes
  for (let end = frameEnd(rest, protobuf); end > 0; end = frameEnd(rest, protobuf)) {
    yield eventIn(rest.subarray(0, end), protobuf)
    rest = rest.subarray(end)
  }
}

/** The end of the first frame; 0 if it is incomplete. */
function frameEnd(bytes: Buffer, protobuf: boolean): number {
  if (!protobuf) return bytes.indexOf('\n') + 1
  if (bytes.length < 4) return 0
  const end = 4 + bytes.readUInt32BE(0)
  return bytes.length < end ? 0 : end
}

function eventIn(frame: Buffer, protobuf: boolean): ReceivedEvent {
  if (!protobuf) {
    const { type, object } = JSON.parse(frame.toString()) as { type: string; object: JsonObject }
    return { type, object, frame }
  }
  const fields = new Map(
    [...readFields(frame.subarray(4))].map(({ number, value }) => [number, value]),
  )
  const [raw] = [...readFields(fields.get(2) as Buffer)].map(({ value }) => value as Buffer)
  return {
    type: String(fields.get(1)),
    object: raw ? fromProtobuf(raw).object : {},
    frame,
  }
}
