import t from 'tap'
import { ageOf, humanDuration } from '../../../../src/api/kube/tables/age.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

void t.test('durations print as in kubectl', async (t) => {
  const written: readonly (readonly [number, string])[] = [
    [-2 * second, '<invalid>'],
    [-1.5 * second, '0s'],
    [0, '0s'],
    [119 * second, '119s'],
    [2 * minute, '2m'],
    [9 * minute + 59 * second, '9m59s'],
    [179 * minute, '179m'],
    [3 * hour, '3h'],
    [7 * hour + 59 * minute, '7h59m'],
    [47 * hour, '47h'],
    [2 * day, '2d'],
    [7 * day + 23 * hour, '7d23h'],
    [8 * day, '8d'],
    [8 * day + hour, '8d'],
    [730 * day, '2y'],
    [731 * day, '2y1d'],
    [8 * 365 * day + 3 * day, '8y'],
  ]
  for (const [ms, text] of written) t.equal(humanDuration(ms), text)
})

void t.test('a time that is not there has no age', async (t) => {
  for (const time of [undefined, null, '', 'yesterday', 7]) t.equal(ageOf(time), '<unknown>')
})
