import t from 'tap'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { runCli } from '../src/cli/cli.ts'
import { documentedCommands, namedCommands } from './documented-commands.ts'
import { listIn, lists, rowsUnder, tables } from './tables.ts'

const read = (path: string) => readFileSync(path, 'utf8')

for (const { file, heading, rows } of tables) {
  void t.test(`${file}, ${heading}: a row for each there is, and no other`, async (t) => {
    t.strictSame(rowsUnder(read(file), heading), rows(), 'node test/write-tables.ts mends it')
  })
}

for (const { file, name, lines } of lists) {
  void t.test(`${file}, ${name}: an item for each there is, and no other`, async (t) => {
    t.equal(listIn(read(file), name), lines().join('\n'), 'node test/write-tables.ts mends it')
  })
}

/** The anchors of a page's headings, as GitHub makes them. */
const anchorsOf = (page: string): ReadonlySet<string> =>
  new Set(
    [
      ...read(page)
        .replaceAll(/^```[\s\S]*?^```/gm, '')
        .matchAll(/^#+ (.*)$/gm),
    ].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )

const documents = globSync(['*.md', 'docs/**/*.md', 'changelog/*.md', 'filters/*.md', 'bench/*.md'])

void t.test('links of documents lead to existing pages and headings', async (t) => {
  t.ok(documents.length >= 4)
  for (const document of documents) {
    const links = read(document).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)
    for (const [link, path = '', anchor] of links) {
      const page = path === '' ? document : join(dirname(document), path)
      t.ok(existsSync(page), `${document}: ${link}`)
      if (anchor !== undefined) t.ok(anchorsOf(page).has(anchor), `${document}: ${link}`)
    }
  }
})

void t.test('a link that names a page leads to that page', async (t) => {
  let named = 0
  for (const document of documents) {
    for (const [link, name = '', path = ''] of read(document).matchAll(
      /\[([^\]]*\.md)\]\(([^)#]*)/g,
    )) {
      named++
      t.equal(basename(name), basename(path), `${document}: ${link}`)
    }
  }
  t.ok(named > 50)
})

/** Of example.com, which is nobody's (RFC 2606), or of others. */
const existing =
  /^(?:(?:\w+\.)*example\.com|kubernetes\.io|www\.w3\.org|json-schema\.org|github\.com\/(?:kubernetes|nodejs|openyurtio))$/

void t.test('pages, packages and the chart name no address that does not exist', async (t) => {
  const files = [...documents, 'package.json', ...globSync('packaging/**/*.{ts,json,yaml,tpl,txt}')]
  const named = files.flatMap((file) => {
    const text = read(file)
    const addresses = text.matchAll(
      /https?:\/\/((?:github\.com\/)?[\w.-]*[a-z])(?=[/:\s"'`)>]|$)/gm,
    )
    const images = text.matchAll(/([\w-]+(?:\.[\w-]+)+)\/nodehub[:@\s]/g)
    return [...addresses, ...images].map(([, host = '']) => ({ file, host }))
  })
  t.ok(named.length > 40)
  const isAddress = ({ host }: { host: string }): boolean => host.includes('.')
  for (const { file, host } of named.filter(isAddress)) t.match(host, existing, `${file}: ${host}`)
})

void t.test('the pages about the code name existing files only', async (t) => {
  const files = globSync('src/**/*.ts').map((path) => basename(path))
  for (const page of ['ARCHITECTURE.md', 'docs/design/data-path.md', 'docs/design/decisions.md']) {
    const text = read(page)
    const folders = new Map(
      [...text.matchAll(/`([A-Z])` is `(src\/[^`]*)`/g)].map(([, letter, folder]) => [
        letter,
        folder,
      ]),
    )
    const paths = [...text.matchAll(/`((?:[A-Z]|src|test|bench|filters|docs)\/[^`\s*]*)`/g)].map(
      ([, path = '']) => path.replace(/^[A-Z](?=\/)/, (letter) => folders.get(letter) ?? letter),
    )
    t.ok(paths.length > 3, page)
    for (const path of paths) t.ok(existsSync(path), `${page}: ${path}`)
    for (const [, name = ''] of text.matchAll(/`([a-z][a-z\d-]*\.ts)`/g))
      t.ok(files.includes(name), `${page}: ${name}`)
  }
})

void t.test('every command that a page shows or names is there, with its flags', async (t) => {
  const helps = new Map<string, string>()
  const helpOf = async (words: readonly string[]): Promise<string> => {
    let help = helps.get(words.join()) ?? ''
    const add = (text: string): void => void (help += text)
    if (help === '')
      t.equal(await runCli([...words, '--help'], { out: add, err: add }), 0, words.join(' '))
    helps.set(words.join(), help)
    return help
  }
  const named = namedCommands()
  t.ok(named.length > 40)
  for (const { page, line } of named) {
    const [, command = '', ...words] = line.split(' ')
    const help = await helpOf([command])
    for (const word of words.filter((each) => /^[a-z-]/.test(each) && each !== '--help'))
      t.ok(help.includes(word.replace(/=.*/, '')), `${page}: ${line}`)
  }
  // Most are run as well: test/docs/commands.test.ts.
  for (const line of documentedCommands()) {
    const [, command = '', word = ''] = line.split(' ')
    const help =
      command === 'check-config'
        ? await helpOf(['start'])
        : await helpOf(['inspect', 'cluster'].includes(command) ? [command, word] : [command])
    for (const [flag] of line.replace(/ -- .*/, '').matchAll(/(?<= )--?[a-z][a-z-]*/g))
      t.ok(help.includes(flag), line)
  }
})
