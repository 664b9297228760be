# AutoHete as an image: built and packaged in one stage, installed from its Debian packages in the next.
#
#     docker build -t autohete .
#     docker run --rm -v "$PWD:/work" autohete train --model models/gpt-quickstart.json --data text.txt --out out
#
# Memory that the container is not granted is not planned with. A GPU needs a base image with CUDA in both stages.
FROM debian:12-slim AS build
COPY . /src
WORKDIR /src
RUN apt-get update && apt-get install -y --no-install-recommends dpkg-dev
RUN sh -c '. cmake/packages.sh && packages_install "$packages_build"'
RUN cmake/release /out

FROM debian:12-slim
COPY --from=build /out/libautohete0_*.deb /out/autohete_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/*.deb && rm -rf /tmp/*.deb /var/lib/apt/lists/*
WORKDIR /work
ENTRYPOINT ["autohete"]
CMD ["--help"]
