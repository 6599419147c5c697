/**
 * To be imported before a test file's own modules. What a module of this project imports of
 * another stands where it says: Node would look for each file, for links on the way to it and for
 * the packages above it, a fifth of the processor time of loading a hub. And packages are loaded
 * from their bundles, where the run has some (bundles.ts).
 */
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { bundlesVariable } from '../kit/hub-programs.ts'
import { bundledPackages, pathOfBundle } from './bundled-packages.ts'

const bundles = process.env[bundlesVariable]
const packages = new Map(
  bundles === undefined
    ? []
    : Object.values(bundledPackages)
        .flat()
        .map((name) => [name as string, pathToFileURL(join(bundles, pathOfBundle(name))).href]),
)

registerHooks({
  resolve: (specifier, context, next) => {
    if (/^\.\.?\/.*\.ts$/.test(specifier) && context.parentURL !== undefined)
      return {
        url: new URL(specifier, context.parentURL).href,
        format: 'module-typescript',
        shortCircuit: true,
      }
    const bundle = context.conditions.includes('import') ? packages.get(specifier) : undefined
    return bundle === undefined
      ? next(specifier, context)
      : { url: bundle, format: 'module', shortCircuit: true }
  },
})
