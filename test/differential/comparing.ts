import { isDeepStrictEqual } from 'node:util'
import { nameOf, type Asking } from './asking.ts'
import type { Door, Heard } from './door.ts'
import { asTwins, connectionOf, type Likeness, type Look } from './likeness.ts'

/** What one request is answered directly, and at one other door. */
export interface Compared {
  readonly name: string
  readonly door: string
  readonly direct: Likeness | undefined
  readonly through: Likeness | undefined
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
 * Reads through every door. What others change in a cluster must not be taken for a difference: two answers count as different only if the
 * API server says before and after the same thing, and something else through the hub.
 */
export async function compareRead(asking: Asking, doors: Doors, look: Look): Promise<Compared[]> {
  const { direct, through } = doors
  for (let left = repetitions; ; left -= 1) {
    const before = await direct.ask(asking)
    const others = through.filter((door) => door.speaks(asking))
    const answers = await Promise.all(
      others.map(async (door) =>
        compared(
          asking,
          { door: direct, heard: before },
          { door, heard: await door.ask(asking) },
          look,
        ),
      ),
    )
    if (left === 0 || answers.every(areAlike)) return answers
    const after = await direct.ask(asking)
    if (isDeepStrictEqual(look(before, direct), look(after, direct))) return answers
  }
}

/** Writes through every door at once, to objects of its own. */
export async function compareWrite(asking: Asking, doors: Doors): Promise<Compared[]> {
  const { direct, through } = doors
  const others = through.filter((door) => door.speaks(asking))
  const ask = async (door: Door): Promise<Said> => ({ door, heard: await door.ask(asking) })
  const [first, ...rest] = await Promise.all([ask(direct), ...others.map(ask)])
  return rest.map((said) => compared(asking, first, said, asTwins))
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
  differsInConnection: differInConnection(first.heard, second.heard),
})

const differInConnection = (first: Heard | undefined, second: Heard | undefined): boolean =>
  first !== undefined &&
  second !== undefined &&
  !isDeepStrictEqual(connectionOf(first), connectionOf(second))
