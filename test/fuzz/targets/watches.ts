import { isDeepStrictEqual } from 'node:util'
import { MalformedBody } from '../../../src/api/codec/malformed-body.ts'
import { watchDecoder } from '../../../src/api/codec/watch-decoder.ts'
import type { WatchEvent } from '../../../src/api/codec/watch.ts'
import type { Encoding, Projection } from '../../../src/api/kube/media-type.ts'
import { corpus } from '../corpus.ts'
import { chunked, mutated } from '../mutate.ts'
import type { Random } from '../random.ts'
import { framesOf as jsonFramesOf, parsed } from '../reference/json.ts'
import { framesOf as protobufFramesOf } from '../reference/protobuf.ts'
import { Finding, pure, type Opening, type Outcome } from '../target.ts'

/**
 * The cutters of watches. Each event is a frame that a reader of the whole finds, in order and
 * unchanged; a stream that ends within a frame is never said to have ended well; and how the bytes
 * were split changes at most how many events are told before one that is refused.
 */
export const watchTargets: readonly Opening[] = [
  watchTarget('json', 'object', /watch(?!.*(table|metadata)).*\.json$/),
  watchTarget('json', 'metadata', /watch-metadata.*\.json$/),
  watchTarget('protobuf', 'object', /watch.*\.pb$/),
]

function watchTarget(encoding: Encoding, projection: Projection, files: RegExp): Opening {
  const bodies = corpus(files)
  return pure(`watch-${encoding}-${projection}`, (random) => {
    return watchRound(encoding, projection, mutated(random, random.of(bodies), bodies), random)
  })
}

/** What the cutter makes of one stream, compared with what it should. */
function watchRound(
  encoding: Encoding,
  projection: Projection,
  body: Buffer,
  random: Random,
): Outcome {
  // Split behind every frame, nothing that was whole is lost with what is refused.
  const whole = cut(
    encoding,
    projection,
    [...body].map((_, i) => body.subarray(i, i + 1)),
  )
  const split = cut(encoding, projection, chunked(random, body))
  if (whole.ended !== split.ended) throw new Finding('ended or not by how it was split', body)
  const same = isDeepStrictEqual(split.events, whole.events.slice(0, split.events.length))
  if (!same) throw new Finding('other events when split otherwise', body)
  if (whole.ended && split.events.length !== whole.events.length) {
    throw new Finding('fewer events when split otherwise', body)
  }
  checkFrames(encoding, body, whole)
  return whole.ended ? 'taken' : 'refused'
}

interface Told {
  readonly events: readonly { readonly known: unknown; readonly frame: string }[]
  /** Whether it was taken for whole. */
  readonly ended: boolean
}

function cut(encoding: Encoding, projection: Projection, chunks: readonly Buffer[]): Told {
  const cutter = watchDecoder(encoding, projection)
  const events: WatchEvent[] = []
  let ended = false
  try {
    for (const chunk of chunks) events.push(...cutter.push(chunk))
    cutter.end()
    ended = true
  } catch (error) {
    if (!(error instanceof MalformedBody)) {
      throw new Finding('not refused as malformed', Buffer.concat(chunks), error)
    }
  }
  return {
    ended,
    events: events.map(({ frame = new Uint8Array(), ...known }) => ({
      known,
      frame: Buffer.from(frame).toString('latin1'),
    })),
  }
}

function checkFrames(encoding: Encoding, body: Buffer, { events, ended }: Told): void {
  const { frames, rest } =
    encoding === 'json'
      ? jsonFramesOf(body)
      : { ...framesAsText(body), rest: protobufFramesOf(body).rest > 0 ? 'left' : '' }
  const told = events.map(({ frame }) => (encoding === 'json' ? frame.replace(/\n$/, '') : frame))
  if (!isDeepStrictEqual(told, frames.slice(0, told.length)))
    throw new Finding('other frames', body)
  if (ended && (rest !== '' || told.length !== frames.length)) {
    throw new Finding('a stream that breaks off was said to have ended', body)
  }
  if (encoding === 'json') {
    for (const { known, frame } of events) checkType(known, frame, body)
  }
}

const framesAsText = (body: Buffer): { frames: string[] } => ({
  frames: protobufFramesOf(body).frames.map((frame) => frame.toString('latin1')),
})

function checkType(known: unknown, frame: string, body: Buffer): void {
  const read = parsed(Buffer.from(frame, 'latin1')) as { type?: unknown } | undefined
  const { type } = known as WatchEvent
  // What the hub cannot read it passes on as it came.
  if (read && type !== 'UNREAD' && read.type !== type) throw new Finding('another type', body)
}
