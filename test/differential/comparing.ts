import { isDeepStrictEqual } from 'node:util'
import { nameOf, type Asking } from './asking.ts'
import type { Door, Heard } from './door.ts'
import { asTwins, asWatched, connectionOf, type Likeness, type Look } from './likeness.ts'

/** What one request is answered directly, and at one other door. */
export interface Compared {
  readonly name: string
  readonly door: string
  readonly direct: Likeness | undefined
  readonly through: Likeness | undefined
  /** Why there is no answer at that door. */
  readonly failure?: unknown
  /** What their likenesses leave out. */
  readonly differsInConnection: boolean
}

export interface Doors {
  readonly direct: Door
  readonly through: readonly Door[]
}

/** How often a read is repeated where the cluster itself has changed meanwhile. */
const repetitions = 4

/**
 * Reads through every door. What others change in a cluster must not be taken for a difference: two
 * answers count as different only if the API server says before and after the same thing, and
 * something else through the hub. One such answer is enough.
 */
export const compareRead = (asking: Asking, doors: Doors, look: Look): Promise<Compared[]> =>
  compareUnless(() => false, asking, doors, look)

/**
 * Watches through every door, as reads are. Connections may break, and a client then watches again:
 * a watch that broke off is repeated, and is a difference where it breaks off each time.
 */
export const compareWatch = (asking: Asking, doors: Doors): Promise<Compared[]> =>
  compareUnless(({ through }) => through === undefined, asking, doors, asWatched)

async function compareUnless(
  isForgiven: (answer: Compared) => boolean,
  asking: Asking,
  doors: Doors,
  look: Look,
): Promise<Compared[]> {
  const { direct } = doors
  const others = speakersOf(asking, doors)
  for (let left = repetitions; ; left -= 1) {
    const before = { door: direct, heard: await direct.ask(asking) }
    const answers = await compareWith(before, asking, others, look)
    const unlike = answers.filter((answer) => !areAlike(answer))
    if (left === 0 || unlike.length === 0) return answers
    if (unlike.every(isForgiven)) continue
    const after = await direct.ask(asking)
    if (isDeepStrictEqual(look(before.heard, direct), look(after, direct))) return answers
  }
}

/** Writes through every door at once, to objects of its own. */
export async function compareWrite(asking: Asking, doors: Doors): Promise<Compared[]> {
  const ask = async (door: Door): Promise<Said> => ({ door, heard: await door.ask(asking) })
  const [first, ...rest] = await Promise.all([
    ask(doors.direct),
    ...speakersOf(asking, doors).map(ask),
  ])
  return rest.map((said) => compared(asking, first, said, asTwins))
}

const speakersOf = (asking: Asking, { through }: Doors): readonly Door[] =>
  through.filter((door) => door.speaks(asking))

function compareWith(
  first: Said,
  asking: Asking,
  others: readonly Door[],
  look: Look,
): Promise<Compared[]> {
  return Promise.all(
    others.map(async (door) =>
      compared(asking, first, { door, heard: await door.ask(asking) }, look),
    ),
  )
}

export const areAlike = ({ direct, through }: Compared): boolean =>
  isDeepStrictEqual(direct, through)

interface Said {
  readonly door: Door
  readonly heard: Heard | undefined
}

const compared = (asking: Asking, first: Said, second: Said, look: Look): Compared => ({
  name: nameOf(asking),
  door: second.door.name,
  direct: look(first.heard, first.door),
  through: look(second.heard, second.door),
  ...(second.heard === undefined && { failure: second.door.failure }),
  differsInConnection: differInConnection(first.heard, second.heard),
})

const differInConnection = (first: Heard | undefined, second: Heard | undefined): boolean =>
  first !== undefined &&
  second !== undefined &&
  !isDeepStrictEqual(connectionOf(first), connectionOf(second))
