module github.com/hhfr/hhfr/compare

go 1.26

require (
	github.com/DataDog/zstd v1.5.7
	github.com/beevik/etree v1.8.1
	github.com/hhfr/hhfr v0.0.0
	github.com/klauspost/compress v1.20.3
	github.com/stretchr/testify v1.12.1
	github.com/tdewolff/parse/v2 v2.8.20
)

require (
	github.com/google/uuid v1.6.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/hhfr/hhfr => ../
