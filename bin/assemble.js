// Puts what runs in production into an empty folder: the built hub and the packages it depends on,
// as they are installed here. Fetches nothing: an image is built where no package registry can be
// reached, and holds exactly what was tested.
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { billOfMaterials } from './sbom.js'

const [from, to] = process.argv.slice(2)
if (to === undefined) fail('usage: assemble.js FROM TO')

const manifest = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'))
const wanted = Number(/\d+/.exec(manifest.engines.node)[0])
const running = Number(process.versions.node.split('.')[0])
if (running < wanted) fail(`the base has Node ${process.versions.node}; the hub needs ${wanted}`)
if (!existsSync(join(from, 'dist', 'src', 'main.js'))) fail('dist is missing: npm run build')

mkdirSync(to, { recursive: true })
const { packages } = JSON.parse(readFileSync(join(from, 'package-lock.json'), 'utf8'))
const production = Object.entries(packages)
  .filter(
    ([path, { dev, optional, devOptional }]) => path !== '' && !dev && !devOptional && !optional,
  )
  .map(([path]) => path)
  .filter((path) => !path.includes('node_modules/@types/'))
// What only a compiler or a debugger reads: of @kubernetes/client-node more than half.
const unread = /\.(?:d\.[cm]?ts|map)$/
for (const path of ['package.json', 'LICENSE', 'dist', ...production]) {
  // Packages nested in another are listed by themselves, as far as they belong here.
  const nested = (source) => source.slice(join(from, path).length).includes('/node_modules')
  cpSync(join(from, path), join(to, path), {
    recursive: true,
    filter: (source) =>
      !nested(source) && !(path.startsWith('node_modules/') && unread.test(source)),
  })
}
const sbom = billOfMaterials(from, manifest, production)
writeFileSync(join(to, 'sbom.cdx.json'), `${JSON.stringify(sbom, undefined, 2)}\n`)

function fail(reason) {
  process.stderr.write(`assemble: ${reason}\n`)
  process.exit(1)
}
