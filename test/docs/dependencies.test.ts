import t from 'tap'
import { readFileSync } from 'node:fs'

interface Package {
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

const page = readFileSync('docs/design/dependencies.md', 'utf8')
const [ofProduct = '', ofDevelopment = ''] = page.split('\n## For the development\n')
const { dependencies, devDependencies } = JSON.parse(
  readFileSync('package.json', 'utf8'),
) as Package

/** The packages in the first cells of the rows. */
const packagesIn = (text: string): string[] =>
  [...text.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  )

void t.test('the page has every package, and why it is there', async (t) => {
  t.strictSame(packagesIn(ofProduct).toSorted(), Object.keys(dependencies).toSorted())
  t.strictSame(packagesIn(ofDevelopment).toSorted(), Object.keys(devDependencies).toSorted())
})
