import type { Opening } from '../target.ts'
import { bootstrapTargets } from './bootstrap.ts'
import { http2Target } from './http2.ts'
import { listenerTarget } from './listener.ts'
import { listTargets } from './lists.ts'
import { objectTargets } from './objects.ts'
import { requestTargets } from './requests.ts'
import { signingRequestTarget } from './signing-requests.ts'
import { tokenTargets } from './tokens.ts'
import { upstreamTarget } from './upstream.ts'
import { watchTargets } from './watches.ts'

/** Everything that is given hostile input. */
export const targets: readonly Opening[] = [
  ...listTargets,
  ...watchTargets,
  ...objectTargets,
  ...requestTargets,
  signingRequestTarget,
  ...bootstrapTargets,
  ...tokenTargets,
  listenerTarget,
  http2Target,
  upstreamTarget,
]
