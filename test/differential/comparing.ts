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
  const { direct } = doors
  const others = speakersOf(asking, doors)
  for (let left = repetitions; ; left -= 1) {
    const before = { door: direct, heard: await direct.ask(asking) }
    const answers = await compareWith(before, asking, others, look)
    if (left === 0 || answers.every(areAlike)) return answers
    const after = await direct.ask(asking)
    if (isDeepStrictEqual(look(before.heard, direct), look(after, direct))) return answers
  }
}

/**
 * Watches through every door. What comes before the API server ends a watch is a matter of its clock, and of how busy it is: a door
 * counts as different only if its watch is so each time.
 */
export async function compareWatch(asking: Asking, doors: Doors): Promise<Compared[]> {
  const { direct } = doors
  const alike: Compared[] = []
  let others = speakersOf(asking, doors)
  for (let left = repetitions; ; left -= 1) {
    const first = { door: direct, heard: await direct.ask(asking) }
    const answers = await compareWith(first, asking, others, asTwins)
    if (left === 0 || answers.every(areAlike)) return [...alike, ...answers]
    alike.push(...answers.filter(areAlike))
    others = others.filter(({ name }) => alike.every(({ door }) => door !== name))
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
  differsInConnection: differInConnection(first.heard, second.heard),
})

const differInConnection = (first: Heard | undefined, second: Heard | undefined): boolean =>
  first !== undefined &&
  second !== undefined &&
  !isDeepStrictEqual(connectionOf(first), connectionOf(second))
