import t from 'tap'
import { fuzz } from './run.ts'
import { pure } from './target.ts'

const megabyte = 1024 * 1024

/** Takes every input, and holds a megabyte of each, of which `letGo` may let go. */
const holding = (letGo: (held: Buffer[]) => void) => {
  const held: Buffer[] = []
  const target = pure('holding', () => {
    held.push(Buffer.alloc(megabyte, 1))
    letGo(held)
    return 'taken'
  })
  return { ...target, warmRounds: 2 }
}

void t.test('memory kept by each round is growth', async (t) => {
  const { growth, taken } = await fuzz(
    holding(() => undefined),
    1,
    (round) => round < 22,
  )
  t.equal(taken, 22)
  t.ok(growth > 15 * megabyte, `${growth} bytes`)
})

void t.test('memory freed a moment later is no growth', async (t) => {
  const late = (held: Buffer[]): void => void setTimeout(() => held.shift(), 30)
  const { growth } = await fuzz(holding(late), 1, (round) => round < 22)
  t.ok(growth < 4 * megabyte, `${growth} bytes`)
})

void t.test('a round that goes wrong is named with its seed', async (t) => {
  const wrong = pure('wrong', () => {
    throw new Error('it was taken')
  })
  const failing = fuzz(wrong, 7, (round) => round < 3)
  await t.rejects(failing, {
    code: 'FAILED_ROUND',
    message: 'wrong: it was taken (--target wrong --seed 7 --round 0)',
  })
})
