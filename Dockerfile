# The hub's image. Build the hub first, then the image, with whatever builds images here:
#
#   npm run build
#   buildah bud -t nodehub .
#
# Nothing is fetched while the image is built but the base, and that only if it is not at hand. What goes in is what `npm install`
# has installed here by the lock file, less what is for development, so the image holds what was tested.
#
# Where no base can be pulled, any root filesystem serves that has Node 26 as /usr/local/bin/node with the libraries it is linked to;
# neither a shell nor npm is needed. From a folder ./rootfs, say:
#
#   base=$(buildah from scratch) && buildah copy $base ./rootfs / && buildah commit $base localhost/node:26
#   buildah bud --isolation chroot --build-arg BASE=localhost/node:26 -t nodehub .
#
# Root filesystems without /usr/local/bin in their PATH are no hindrance: commands name it.
#
# For both processors at once. No file of the hub is for one of them, only the base is, and nothing of the other processor is run:
#
#   buildah bud --platform linux/amd64,linux/arm64 --build-arg BUILDPLATFORM=linux/amd64 --manifest nodehub .
#
# Docker knows BUILDPLATFORM by itself. Of bases at hand, name one that runs here, which assembles, and the one of the other processor by
# its id: --platform linux/arm64 --build-arg ASSEMBLY=localhost/node:26 --build-arg BASE=4c817569f8f2.
#
# buildah drops the health check unless it is told --format docker: images of OCI have none.
#
# /app/sbom.cdx.json in the image lists the packages that it holds, with their checksums (CycloneDX).
ARG BASE=docker.io/library/node:26-slim
ARG ASSEMBLY=${BASE}

FROM --platform=$BUILDPLATFORM ${ASSEMBLY} AS assembly
COPY . /source
RUN ["/usr/local/bin/node", "/source/bin/assemble.js", "/source", "/app"]

FROM ${BASE}
LABEL org.opencontainers.image.title="nodehub" \
      org.opencontainers.image.description="A node-local Kubernetes API hub" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=assembly /app /app
# With an arena of its own for each thread, malloc would keep what one thread has freed from the others. And the buffers of a list, of 64 KiB
# and more, go back to the kernel when they are freed: without a fixed limit malloc would keep them after the first list, some 100 MB.
ENV NODE_ENV=production MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=65536
WORKDIR /app
# Root, and not by neglect: the kubelet's certificate and key under /var/lib/kubelet/pki are readable by root alone, and are renewed under
# the same rule; the hub's own state holds Secrets and is root's for the same reason. The static pod that `nodehub manifests` prints takes
# from root all else: no capabilities, no privilege escalation, a read-only root filesystem.
USER 0:0
# 10261 the node's plain proxy, 10267 health and metrics, 10268 the proxy over TLS; all on loopback unless told otherwise.
EXPOSE 10261 10267 10268
# For container runtimes that look for it; a kubelet has the probes of the static pod. Only `nodehub start` listens there.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["/usr/local/bin/node", "-e", "fetch(`http://127.0.0.1:${process.env.NODEHUB_SERVE_PORT ?? 10267}/livez`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# The young generation kept small halves the memory of a hub under load, for a few percent of its rate; smaller still, requests under way
# outgrow it and pile up in the old one. On SIGUSR1 Node would open its debugger to every program of the node's network.
ENTRYPOINT ["/usr/local/bin/node", "--disable-sigusr1", "--max-semi-space-size=4", "/app/dist/src/main.js"]
CMD ["--help"]
