import t from 'tap'
import { exceededBars, type Bars } from './bars.ts'

const bars: Bars = { pages: 1, words: 4, readmeWords: 3, readmeLinks: 1, longCells: 0 }

const found = (readme: string, ...pages: readonly string[]): string[] =>
  exceededBars(
    [
      { path: 'README.md', source: readme },
      ...pages.map((source, i) => ({ path: `docs/${i}.md`, source })),
    ],
    bars,
  )

void t.test('pages within the bars pass', async (t) => {
  t.strictSame(found('a [hub](hub.md) here', 'four words | of text'), [])
})

void t.test('each bar has a sentence where it is exceeded', async (t) => {
  t.match(found('one two three four'), [/^4 words in README.md, and 3 at most$/])
  t.match(found('[a](a.md) [b](b.md)'), [/^2 links in README.md/])
  t.match(found('', 'one two', 'three four'), [/^2 pages/])
  t.match(found('', 'one two three four five'), [/^5 words in docs/])
})

void t.test('a long cell is named, and the address of a link does not count', async (t) => {
  const cell = (text: string): string => `| ${text} |`
  t.match(found('', cell('x'.repeat(201))), [/^1 cells of more than 200 .*docs\/0.md: xxx/])
  t.strictSame(found('', cell(`[x](https://a/${'x'.repeat(300)})`)), [])
})
