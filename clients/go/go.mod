module incumbent.dev/client

go 1.21
