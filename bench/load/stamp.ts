/**
 * A stamp is the value of an annotation: which write it was, and when it was sent by the clock that
 * all processes of a machine share. The same bytes stand in an event in JSON and in protobuf, and
 * nowhere else in it: managed fields name keys, not values.
 */
export const stampAnnotation = 'bench.nodehub/sent'

const mark = 'sent@'
const sequenceDigits = 8
const timeDigits = 18

export interface Stamp {
  readonly sequence: number
  /** Nanoseconds by the machine's monotonic clock. */
  readonly sentAt: bigint
}

export const stampText = ({ sequence, sentAt }: Stamp): string =>
  `${mark}${String(sequence).padStart(sequenceDigits, '0')}@${String(sentAt).padStart(timeDigits, '0')}`

/** The stamp in the bytes of one event; `undefined` for an event that no write of ours made. */
export function findStamp(frame: Buffer): Stamp | undefined {
  const at = frame.indexOf(mark)
  if (at < 0) return undefined
  const from = at + mark.length
  const text = frame.toString('latin1', from, from + sequenceDigits + 1 + timeDigits)
  const [, sequence, sentAt] = /^(\d+)@(\d+)$/.exec(text) ?? []
  return sequence === undefined || sentAt === undefined
    ? undefined
    : { sequence: Number(sequence), sentAt: BigInt(sentAt) }
}
