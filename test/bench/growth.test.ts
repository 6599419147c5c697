import t from 'tap'
import { fittedLine, steadySlope } from '../../bench/measure/growth.ts'

const pointsOf = (value: (size: number) => number) =>
  [10, 100, 1000, 5000, 20_000].map((size) => ({ size, value: value(size) }))

void t.test('linear growth has a slope of 1, quadratic growth of 2', async (t) => {
  t.equal(fittedLine(pointsOf((size) => 3 * size))?.slope.toFixed(6), '1.000000')
  t.equal(fittedLine(pointsOf((size) => 3 * size))?.factor.toFixed(6), '3.000000')
  t.equal(fittedLine(pointsOf((size) => size ** 2))?.slope.toFixed(6), '2.000000')
})

void t.test('a small quadratic share shows above a constant', async (t) => {
  const slope = fittedLine(pointsOf((size) => 1000 + size / 100 + size ** 2 / 10_000))?.slope ?? 0
  t.ok(slope > 1.15, `${slope}`)
})

void t.test('one point, or none, gives no line', async (t) => {
  t.equal(fittedLine([{ size: 10, value: 1 }]), undefined)
  t.equal(
    fittedLine([
      { size: 0, value: 1 },
      { size: 5, value: 0 },
    ]),
    undefined,
  )
})

void t.test('a steady loss is found among jumps a thousand times as large', async (t) => {
  const jumps = [0, 900_000, -400_000, 0, 0, 1_200_000, 0, 0, 0]
  const points = jumps.map((jump, at) => ({ size: at * 1000, value: at * 1000 * 1024 + jump }))
  t.equal(steadySlope(points), 1024)
  t.equal(steadySlope(jumps.map((value, at) => ({ size: at * 1000, value }))), 0)
})
