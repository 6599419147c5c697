import t from 'tap'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { configFile } from '../packaging/payload.ts'
import { parseInspection } from '../src/cli/inspect/inspect.ts'
import { runCli } from '../src/cli/cli.ts'
import { readFlags } from '../src/cli/command-flags.ts'
import { adoptFlags } from '../src/cli/adopt-command.ts'
import { joinFlags } from '../src/cli/join-command.ts'
import { leaveFlags } from '../src/cli/leave-command.ts'
import { lintFlags } from '../src/cli/lint-command.ts'
import { manifests } from '../src/cli/manifests.ts'
import {
  readCheckConfig,
  readClusterConfig,
  readExitPlanConfig,
  readGiveBackConfig,
} from '../src/config/cluster-config.ts'
import { readConfig } from '../src/config/config.ts'
import { readNodeFile } from './kit/node-files.ts'
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

void t.test('every command that the text of a page names is there, with its flags', async (t) => {
  const named = namedCommands()
  t.ok(named.length > 40)
  const helps = new Map<string, string>()
  const helpOf = async (command: string): Promise<string> => {
    let help = ''
    const add = (text: string): void => void (help += text)
    t.equal(await runCli([command, '--help'], { out: add, err: add }), 0, command)
    return help
  }
  for (const { page, line } of named) {
    const [, command = '', ...words] = line.split(' ')
    const help = helps.get(command) ?? (await helpOf(command))
    helps.set(command, help)
    for (const word of words.filter((each) => /^[a-z-]/.test(each) && each !== '--help'))
      t.ok(help.includes(word.replace(/=.*/, '')), `${page}: ${line}`)
  }
})

void t.test('every command that a document shows is understood', async (t) => {
  const commands = documentedCommands()
  t.ok(commands.length >= 6)
  const settings = `${read('packaging/config.yaml')}server-addr: https://10.0.0.1:6443\n`
  const readFile = (path: string) => (path === configFile ? settings : readNodeFile(path))
  const printed = { out: () => undefined, err: (text: string) => t.fail(text) }
  for (const line of commands) {
    const [, command, ...argv] = line.split(' ')
    if (command === 'inspect') {
      const parsed = await parseInspection(argv)
      t.notOk('mistakes' in parsed && parsed.mistakes, line)
    } else if (command === 'join') t.strictSame(readFlags(joinFlags, argv).mistakes, [], line)
    else if (command === 'adopt') t.strictSame(readFlags(adoptFlags, argv).mistakes, [], line)
    else if (command === 'leave') t.strictSame(readFlags(leaveFlags, argv).mistakes, [], line)
    else if (command === 'lint') t.strictSame(readFlags(lintFlags, argv).mistakes, [], line)
    else if (command === 'manifests') t.equal(await manifests.run(argv, printed), 0, line)
    else if (command === 'check-config') {
      const read = readConfig({ argv, env: {}, hostname: 'edge-1', readFile })
      t.notOk('mistakes' in read && read.mistakes, line)
    } else if (command === 'cluster') {
      const sources = { env: {}, readFile: readNodeFile }
      const [word = '', ...flags] = argv
      const read =
        word === 'check'
          ? readCheckConfig({ ...sources, argv: flags })
          : word === 'exit-plan'
            ? readExitPlanConfig({ ...sources, argv: flags })
            : word === 'give-back'
              ? readGiveBackConfig({ ...sources, argv: flags })
              : readClusterConfig({ ...sources, argv })
      t.notOk('mistakes' in read && read.mistakes, line)
    } else t.fail(`${line}: is not tried here`)
  }
})
